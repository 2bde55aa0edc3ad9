"""Whose size a session takes: looking never changes it, and typing only as the policy says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from wsh.visual.viewer.viewer import PresentViewers, Viewer

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage

SizePolicy: TypeAlias = Literal["typed", "smallest", "latest", "fixed"]


class ViewerSizes:
    def __init__(self, session: Session, stage: Stage, present: PresentViewers, policy: SizePolicy) -> None:
        self._session = session
        self._stage = stage
        self._present = present
        self.policy: SizePolicy = policy
        self._typist = ""
        """Id of the viewer that typed last."""
        self._typist_input = 0
        """The number that it chose for its input."""

    def measure(self, viewer: Viewer, rows: int, cols: int) -> None:
        """Note what has room at the viewer, and how large its picture is."""
        viewer.rows, viewer.cols = rows, cols
        viewer.fits = (viewer.shape.picture_rows, cols)
        self.follow_session(viewer)

    def follow_session(self, viewer: Viewer) -> None:
        """A whole picture is as large as the session's."""
        rows, cols = self._stage.rows + viewer.status, self._stage.cols
        if viewer.whole and (rows, cols) != (viewer.rows, viewer.cols):
            viewer.rows, viewer.cols, viewer.stale, viewer.renew = rows, cols, True, True

    def counts(self, viewer: Viewer) -> bool:
        """Whether the session takes this viewer's size when somebody types there."""
        if viewer.read_only or not self._session.running or self.policy == "fixed":
            return False
        return self.policy != "typed" or self._session.created_by.kind != "agent"

    def fit(self, viewer: Viewer) -> None:
        """Give the session the viewer's size, whatever the policy: the person asked for it."""
        if self._session.running and not viewer.read_only:
            self._give(*viewer.fits)

    def fit_typist(self, viewer: Viewer) -> None:
        """Somebody typed at this viewer."""
        self._typist, self._typist_input = viewer.id, viewer.receipt.id
        if self.policy != "smallest" and viewer.fits != (self._stage.rows, self._stage.cols):
            self.fit_all()

    def resume_typist(self, viewer: Viewer) -> None:
        """A viewer came again, perhaps in another part of its page: if it was the one that typed last, it still is."""
        if self._typist_input and viewer.receipt.id == self._typist_input:
            self._typist = viewer.id

    def fit_all(self) -> None:
        """Give the session the size that the policy says."""
        # A viewer that only looks takes the picture as it is.
        typing = [viewer for viewer in self._present.values() if self.counts(viewer)]
        if not typing:
            return
        match self.policy:
            case "typed":
                typist = self._present.get(self._typist)
                if typist is not None and self.counts(typist):
                    self._give(*typist.fits)
            case "latest":
                self._give(*max(typing, key=lambda v: v.active).fits)
            case "smallest":
                self._give(min(v.fits[0] for v in typing), min(v.fits[1] for v in typing))
            case "fixed":
                pass
            case _:
                assert_never(self.policy)

    def _give(self, rows: int, cols: int) -> None:
        if (rows, cols) != (self._stage.rows, self._stage.cols):
            self._stage.resize(rows, cols)

    def tell(self, viewer: Viewer) -> None:
        viewer.outlet.tell(
            {
                "type": "size",
                "rows": self._stage.rows,
                "cols": self._stage.cols,
                "viewer": viewer.id,
                "policy": self.policy,
                "follows": self.counts(viewer),
            }
        )
