"""Pictures of the environments, drawn with Pillow, and a pygame window that shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from rlfd_gym._install import command

INK = (40, 40, 40)
PAPER = (255, 255, 255)
LINE = (205, 205, 205)
OBSTACLE = (213, 94, 0)  # colour-blind safe: vermilion, bluish green, blue (Okabe and Ito)
GOAL = (0, 158, 115)
AGENT = (0, 114, 178)

Frame = NDArray[np.uint8]


def draw_grid(cells: NDArray[np.int8], agent: tuple[int, int], longest: int = 600) -> Frame:
    """Draw a grid from above, with row 0 at the bottom.

    In `cells`, 0 is a free cell, 1 an obstacle and -1 a goal.
    """
    from PIL import Image, ImageDraw

    height, width = cells.shape
    side = max(1, longest // max(height, width))
    colours = np.empty((height, width, 3), dtype=np.uint8)
    colours[:] = PAPER
    colours[cells == 1] = OBSTACLE
    colours[cells == -1] = GOAL
    image = Image.fromarray(colours[::-1].repeat(side, axis=0).repeat(side, axis=1))
    draw = ImageDraw.Draw(image)
    if side >= 6:
        for x in range(0, width * side, side):
            draw.line([(x, 0), (x, height * side)], fill=LINE)
        for y in range(0, height * side, side):
            draw.line([(0, y), (width * side, y)], fill=LINE)
    row, column = agent
    centre = ((column + 0.5) * side, (height - row - 0.5) * side)
    radius = max(0.36 * side, 4.0)  # visible even if a cell is one pixel
    draw.ellipse([centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius], fill=AGENT)
    return np.asarray(image)


def draw_stock(stock: int, capacity: int, order: int | None, demand: int | None) -> Frame:
    """Draw the stock as a bar, and write the order and the demand that led to it."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (640, 240), PAPER)
    draw = ImageDraw.Draw(image)
    large, small = ImageFont.load_default(28), ImageFont.load_default(18)
    left, right, top, bottom = 30, 610, 80, 140
    draw.text((left, 22), f"stock {stock} of {capacity}", font=large, fill=INK)
    draw.rectangle([left, top, left + (right - left) * stock / capacity, bottom], fill=AGENT)
    if capacity <= 60:
        for unit in range(1, capacity):
            x = left + (right - left) * unit / capacity
            draw.line([(x, top), (x, bottom)], fill=LINE)
    draw.rectangle([left, top, right, bottom], outline=INK, width=2)
    if order is None or demand is None:
        draw.text((left, 165), "no order yet", font=small, fill=INK)
    else:
        draw.text((left, 165), f"last order {order}, last demand {demand}", font=small, fill=INK)
    return np.asarray(image)


class Window:
    """A pygame window that shows frames at a steady pace."""

    def __init__(self, title: str, fps: int) -> None:
        """Check that pygame is installed; the first frame sets the size and opens the window."""
        try:
            import pygame
        except ImportError as error:
            raise DependencyNotInstalled(f'render_mode="human" needs pygame: {command("render")}') from error
        self._pygame: Any = pygame
        self._title, self._fps = title, fps
        self._screen: Any = None
        self._clock: Any = None

    def show(self, frame: Frame) -> None:
        """Show a frame on the screen."""
        if self._screen is None:
            self._pygame.display.init()
            self._pygame.display.set_caption(self._title)
            self._screen = self._pygame.display.set_mode((frame.shape[1], frame.shape[0]))
            self._clock = self._pygame.time.Clock()
        self._pygame.surfarray.blit_array(self._screen, frame.swapaxes(0, 1))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window."""
        if self._screen is not None:
            self._pygame.display.quit()
            self._screen = None
