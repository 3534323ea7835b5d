"""The auxiliary losses: where segments lie, and the two objectives."""
