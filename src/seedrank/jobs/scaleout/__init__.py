"""Workers beside this process, through Dask."""
