"""What `tools/compat` runs, and the page that it writes."""
