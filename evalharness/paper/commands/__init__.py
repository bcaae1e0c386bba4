"""The commands of this folder: `evalharness paper`."""
