"""The commands of this folder: `evalharness paper` and `evalharness paper diversity`."""
