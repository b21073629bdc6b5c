"""SciWorld: the thirty tasks of ScienceWorld, many environments on one Java machine."""
