"""What a DataFrame or a table name stands for: files, columns, options."""
