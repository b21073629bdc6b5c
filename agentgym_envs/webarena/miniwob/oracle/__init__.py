"""What solves MiniWoB's tasks; `solvers` has the table."""
