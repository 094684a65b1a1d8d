"""Interactive claims: sliders and switches for a claim's fields; every move runs the claim again and shows its verdict.

``knobs`` lists a claim's knobs, ``runs`` turns their values into pictures and verdicts, ``view`` writes these as HTML; none of
them depends on where it is shown: ``server`` shows it in the browser (``jaxdyn explore``), ``notebook`` in a notebook
(``jd.explore``), both with the same front end, ``explore.js``.
"""
