"""How the installer marks its own steps among the output of pip and uv."""

STEP = "==> "
