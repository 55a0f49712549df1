"""What people look at: plots, pages of HTML, tables and CSV files."""

from __future__ import annotations
