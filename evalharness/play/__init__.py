"""One evaluation: tasks and a policy become episodes, in order, resumable."""
