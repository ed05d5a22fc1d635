"""Columns and values of Parquet files and Arrow tables, checked."""
