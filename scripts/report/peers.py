# SPDX-License-Identifier: Apache-2.0
"""The same steps in other libraries, as scripts/peers.sh measures them."""

from .contents import Column, Table
from .fields import number, numbers, positive, table, text
from .numbers import RATIO, between, count, plural, seconds


def peers(study):
    """Returns a table of peers.json: a row for each model, and a column for each library."""
    rows = [row for row in table(study.peers, "peers") if positive(row, "ratio_to_tessera")]
    works, names = {}, dict.fromkeys(text(row, "name") or "" for row in rows)
    for row in rows:
        own = works.setdefault(str([row.get(key) for key in ("model", "ranks", "precision")]), {"": row})
        own[text(row, "name") or ""] = row

    def ratio(name):
        return lambda own: name in own and between(
            number(own[name], "ratio_to_tessera"), *[*numbers(own[name], "ratio_in_rounds"), None, None][:2], RATIO, 3) or None  # fmt: skip

    # The first row of a work is the one that its ratios are to.
    columns = [Column(key, lambda own, key=key: text(own[""], key), "word") for key in ("model", "precision")]
    columns.insert(1, Column("ranks", lambda own: count(number(own[""], "ranks")), "word"))
    columns.append(Column("our step", lambda own: seconds(number(own[""], "step_seconds"))))
    columns += [Column(name, ratio(name)) for name in names if name not in {text(own[""], "name") for own in works.values()}]
    caption = (
        f"Steps of other libraries over our data-parallel step: above 1 × Tessera is faster. A ratio is the median of "
        f"{plural(min((len(numbers(row, 'rounds')) for row in rows), default=0), 'round')}, in each of which all programs ran in "
        f"turn, with the smallest and the largest. Model, batch, initial weights and the losses of the first two steps are the "
        f"same. {', '.join(sorted({text(row, 'version') or '' for row in rows}))}, on "
        f"{text(study.peers, 'device_name') or 'an unknown device'} with "
        f"{plural(number(study.peers, 'threads_per_rank') or 1, 'thread')} per rank."
    )
    return Table(list(works.values()), columns, caption)
