"""What files a table has now, one module for each way to tell."""
