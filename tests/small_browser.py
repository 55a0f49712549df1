"""A page as a browser shows it."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def opened(page, folder, *flags):
    """The page as a browser shows it at the width of a phone, with what the probe found there."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium or Chrome is installed to open the page with")
    path = folder / "page.html"
    path.write_text(page)
    usual = (
        "--headless --no-sandbox --disable-gpu --disable-quic --disable-background-networking --window-size=500,900 "
        "--disable-component-update --disable-sync --no-first-run --virtual-time-budget=10000 --dump-dom"
    )
    command = [browser, *usual.split(), f"--user-data-dir={folder / 'user'}", *flags, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
