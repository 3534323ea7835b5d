"""Where trainings and measurements are done: tasks, and what does them."""
