"""Made-up databases on which errors of questions in SQL are predicted, from public facts alone."""
