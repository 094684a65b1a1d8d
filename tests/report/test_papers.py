"""Publications: one entry each."""

from jaxdyn.report import papers


def test_every_publication_is_listed_once_and_has_all_its_parts():
    every = [value for value in vars(papers).values() if isinstance(value, papers.Paper)]
    numbers = [paper.arxiv for paper in every]
    assert len(every) > 40 and len(set(numbers)) == len(numbers)
    assert all(paper.title and paper.authors for paper in every)
