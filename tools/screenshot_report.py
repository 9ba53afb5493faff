"""Takes a picture of a report with headless Chromium (Debian: apt-get install chromium).

python tools/screenshot_report.py build/demo/report.html docs/images/report.png
python tools/screenshot_report.py build/demo/report.html phone.png --theme dark --size 500x1800
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Chromium has no flag for the colour scheme itself; these are the values of Blink's own enumeration.
SCHEMES = {"dark": 0, "light": 1}


def take_picture(report: Path, picture: Path, theme: str, width: int, height: int) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"no browser: looked for {', '.join(BROWSERS)}; run apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--blink-settings=preferredColorScheme={SCHEMES[theme]}",
            f"--window-size={width},{height}",
            "--virtual-time-budget=2000",
            f"--screenshot={picture.resolve()}",
            report.resolve().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--theme", choices=SCHEMES, default="light")
    parser.add_argument("--size", default="1280x930", help="pixels, such as %(default)s")
    arguments = parser.parse_args()
    if not arguments.report.is_file():
        sys.exit(f"no report at '{arguments.report}': run make demo, or etrt report RUN -r html -o FILE")
    width, height = map(int, arguments.size.split("x"))
    take_picture(arguments.report, arguments.picture, arguments.theme, width, height)
    print(f"{arguments.picture}: {arguments.picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
