"""Getting a dataset's files: found where the user has them, otherwise downloaded, verified and unpacked."""
