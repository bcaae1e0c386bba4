"""What a policy does beside scoring: errors, getting stuck, recovering, exploring. Formulas: docs/behaviour.md.

`turns` reads one episode turn by turn, `figures` defines each figure as a ratio of two counts, `rows` turns stored runs
into rows with intervals, and two runs into differences. A run needs only the first two, and not numpy.
"""
