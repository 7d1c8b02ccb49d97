"""The methods of ACP v1, one file per family; table.py lists them."""
