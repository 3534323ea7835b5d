"""The measurements on data as a table for a terminal."""

from rich.table import Table

from auxrnn.bench.data_results import DataResults, make_figures
from auxrnn.bench.tables import new_table

WORDS = {True: "yes", False: "no", None: ""}


def make_data_table(results: DataResults) -> Table:
    """Give all figures, each with its limit and whether it is held where there is one."""
    sizes = results.sizes
    size = f"{sizes.image_size}x{sizes.image_size}"
    title = f"{sizes.num_texts:,} texts of {sizes.mean_characters} characters, {sizes.num_images:,} images of {size}"
    table = new_table(title, ["what", "measured", "limit", "held"])
    table.caption = "memory: the most of it that belongs to no file"
    for figure in make_figures(results).values():
        limit = "" if figure.limit is None else f"< {figure.limit:g} {figure.unit}"
        table.add_row(figure.title, f"{figure.value:.2f} {figure.unit}", limit, WORDS[figure.is_held])
    return table
