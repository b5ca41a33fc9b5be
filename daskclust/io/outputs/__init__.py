"""What is written beside results, and how: all columns of a file, any format, tables that grow."""
