"""DBpedia: articles in 14 classes, as title and abstract in lower case (Zhang et al., 2015; section 4.3)."""

from auxrnn.config import DataConfig
from auxrnn.data.examples import Problems, Source, Understood
from auxrnn.data.spec import Content, DatasetSpec, PublishedFile, check_options, get_files

MAX_LENGTH = 1014
# A user's own tables are taken as they are, so a part of the dataset is enough.
ARCHIVE = PublishedFile(
    name="dbpedia_csv.tgz",
    num_bytes=68_341_743,
    checksum="sha256:42db5221ddedddb673a4cabcc5f3a7d869714c878bcfe4ba94b29d14aa38e417",
    mirrors=("https://s3.amazonaws.com/fast-ai-nlp",),
    unpacked=(Content("train.csv"), Content("test.csv")),
    folder="dbpedia_csv",
)


def open_dbpedia(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return DBpedia as a source, with the alphabet of Zhang et al. and at most 1014 characters of a text."""
    from auxrnn.data import formats  # noqa: PLC0415 - slow, and the list of datasets does without
    from auxrnn.data.readers.table import TableOptions, table_source  # noqa: PLC0415 - the same

    check_options(config, ("tokens",), what=spec.name)
    train, test = get_files(spec, config.data_dir)
    names = train.with_name("classes.txt")
    class_names = names if names.is_file() else None
    options = TableOptions("2+3", "1", config.tokens, is_lowercase=True, class_names=class_names)
    source = table_source(spec.name, {"train": train, "test": test}, options)
    alphabet = formats.ZHANG_ALPHABET if config.tokens == "characters" else None

    def understand(problems: Problems, like: formats.Format | None) -> Understood:
        understood = source.read(problems, like)
        assert isinstance(understood.format, formats.TextFormat)
        return understood._replace(format=understood.format._replace(alphabet=alphabet, max_length=MAX_LENGTH))

    return source._replace(options={**source.options, "preset": spec.name}, read=understand)


DBPEDIA = DatasetSpec(
    name="dbpedia",
    title="DBpedia, titles and first lines of articles by what they describe",
    lengths="up to 1,014",
    num_classes=14,
    train_examples=560_000,
    test_examples=70_000,
    license="CC BY-SA, GFDL",
    citation="Zhang, Zhao and LeCun, Character-Level Convolutional Networks for Text Classification, 2015",
    open=open_dbpedia,
    files=(ARCHIVE,),
)
