# SPDX-License-Identifier: MIT
"""What stands on a page of HTML that the command wrote."""
import html.parser
import json
import re

VOID = {'meta', 'img', 'br', 'link', 'input'}


class Page(html.parser.HTMLParser):
    """Tables, charts and elements of a page, which must be closed in order."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text()
        self.open, self.tags, self.attributes = [], [], []
        self.tables, self.charts, self.titles, self.paragraphs = [], [], [], []
        self.feed(self.text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)
        lists = {'table': self.tables, 'h2': self.titles, 'p': self.paragraphs}
        if tag in lists:
            lists[tag].append([] if tag == 'table' else '')
        elif tag == 'tr':
            self.tables[-1].append([])
        elif tag in ('th', 'td'):
            self.tables[-1][-1].append('')
        elif tag == 'figure':
            self.charts.append({'title': ''})

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        tag = self.open[-1] if self.open else ''
        if tag in ('th', 'td'):
            self.tables[-1][-1][-1] += data
        elif tag == 'figcaption':
            self.charts[-1]['title'] += data
        elif tag == 'script' and 'figure' in self.open:
            self.charts[-1]['data'] = json.loads(data)
        elif tag == 'h2':
            self.titles[-1] += data
        elif tag == 'p':
            self.paragraphs[-1] += data

    def fact(self, name):
        """The cells of a row of the first table."""
        rows = [row[1:] for row in self.tables[0] if row[0] == name]
        return rows[0] if rows else None

    def chart(self, title):
        found = [chart for chart in self.charts if re.sub(r' \(log.*', '', chart['title']) == title]
        return found[0] if len(found) == 1 else None

    def check_alone(self, bench):
        """It asks nobody, and is for all screens and for paper."""
        text = self.text.replace('http://www.w3.org/2000/svg', '')
        bench.expect(not re.search(r'https?:|@import|url\(|<link', text), 'asks the network')
        bench.expect(all(value.startswith('data:') for name, value in self.attributes
                         if name in ('src', 'href')), 'a foreign file')
        bench.expect(not any(name.startswith('on') for name, _ in self.attributes), 'a handler')
        for word in ('prefers-color-scheme: dark', '@media print', 'name="viewport"'):
            bench.expect(word in self.text, f'no {word}')
