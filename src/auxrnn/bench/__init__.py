"""What is timed, against whom, and the ratios that come out."""
