"""SciWorld: the thirty tasks of ScienceWorld, with many environments in one JVM."""
