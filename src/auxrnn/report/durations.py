"""How long something took, in the words of reports."""


def describe_duration(seconds: int | float) -> str:
    """Give a time in its two largest units: `31 s`, `1 min 15 s`, `3 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min"
