"""For C++ and CMake projects: nanoloom.hpp over a model's C header, and a package."""

from pathlib import Path

FOLDER = Path(__file__).parent
