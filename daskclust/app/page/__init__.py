"""The explorer's page: panels in a grid, how it looks, and what its address keeps."""
