import sys

from evalharness.cli import main

sys.exit(main())
