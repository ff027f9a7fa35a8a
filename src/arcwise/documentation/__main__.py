"""python -m arcwise.documentation [FOLDER]"""

from __future__ import annotations

import sys
from pathlib import Path

from arcwise.documentation.writing import write
from arcwise.progress import reporter_for

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/losses")
    print(f"{len(write(folder, reporter=reporter_for(quiet=False)))} files in {folder}")
