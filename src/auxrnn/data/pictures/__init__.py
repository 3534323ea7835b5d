"""Folders of pictures, and Stanford Dogs as it is published."""
