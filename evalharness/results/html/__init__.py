"""Write HTML pages that are one file each."""
