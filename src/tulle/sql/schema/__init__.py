"""What is public about a database: tables, columns, owners, declared ranges."""
