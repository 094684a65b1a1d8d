"""The report, one self-contained page of all claims, and the generated documents: catalogue, studies, atlas, talks, gallery."""
