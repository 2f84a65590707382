"""What a table consists of: its columns, its files as they are now, and the values in them. No Spark."""
