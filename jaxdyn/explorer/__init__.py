"""A theorem with knobs: a claim's fields as sliders and switches, run again at every move, and its verdict.

``knobs`` says which controls a claim has, ``runs`` turns their values into pictures and verdicts, ``view`` writes these as HTML:
none of them knows a page. ``server`` shows them in the browser (``jaxdyn explore``), ``notebook`` in a notebook (``jd.explore``);
both have the same front end, ``explore.js``.
"""
