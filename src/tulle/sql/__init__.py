"""SQL counts and sums over any joins, with whole participants protected."""
