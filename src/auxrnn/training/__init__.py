"""One step, the phases, the loop, and what is kept of them."""
