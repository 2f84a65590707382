"""The data source format("lakebloom")."""
