"""`auxrnn tune`: what is searched, how one trial runs, and the study that they make together."""
