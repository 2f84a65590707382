"""Rows of Parquet files, page by page: ``file_pages.FilePages`` reads them, decoded by PyArrow."""
