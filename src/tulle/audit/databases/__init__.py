"""What is audited of databases beyond relations."""
