"""One file per family of formats: tables of texts, arrays, time series, image files; each returns a `Source`."""
