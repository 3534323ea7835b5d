"""HTML taken apart by the standard library's parser."""

from html.parser import HTMLParser

VOID = {"meta", "br"}


class Elements(HTMLParser):
    """Collects tags and attributes, and refuses tags that close in the wrong order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(text):
    elements = Elements()
    elements.feed(text)
    elements.close()
    assert elements.open == []
    return elements
