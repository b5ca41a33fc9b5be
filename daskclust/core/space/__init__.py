"""Points in space: the grid, sorting into cells, planes, partition into blocks with halos."""
