"""Lists for QML: each row a frozen value, each field a role of the same name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QAbstractListModel, QByteArray, QModelIndex, QPersistentModelIndex, Qt

Row = TypeVar("Row")
_ROOT = QModelIndex()


class ListModel(QAbstractListModel, Generic[Row]):
    """Rows of one dataclass, told apart by `key`. Replacing the rows keeps those that stay."""

    def __init__(self, kind: type[Row], key: str) -> None:
        super().__init__()
        self._fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # any dataclass
        self._key = key
        self.rows: list[Row] = []

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def roleNames(self) -> dict[int, QByteArray]:
        return {Qt.ItemDataRole.UserRole + n: QByteArray(name.encode()) for n, name in enumerate(self._fields)}

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        at = role - Qt.ItemDataRole.UserRole
        if not index.isValid() or not 0 <= at < len(self._fields):
            return None
        value = getattr(self.rows[index.row()], self._fields[at])
        return list(value) if isinstance(value, tuple) else value

    def _name(self, row: Row) -> object:
        return getattr(row, self._key)

    def find(self, name: object) -> int:
        return next((n for n, row in enumerate(self.rows) if self._name(row) == name), -1)

    def put(self, row: Row, *, first: bool = False) -> None:
        """Replace the row of the same name in its place, or add it at the end (or in front)."""
        at = self.find(self._name(row))
        if at >= 0:
            self.rows[at] = row
            self.dataChanged.emit(self.index(at), self.index(at))
            return
        at = 0 if first else len(self.rows)
        self.beginInsertRows(_ROOT, at, at)
        self.rows.insert(at, row)
        self.endInsertRows()

    def take(self, name: object) -> Row | None:
        at = self.find(name)
        if at < 0:
            return None
        self.beginRemoveRows(_ROOT, at, at)
        row = self.rows.pop(at)
        self.endRemoveRows()
        return row

    def edit(self, rows: Sequence[Row]) -> None:
        """Replace the rows where a row's name is what people edit: one row with another name stays the row it was.

        A view then keeps it as its current one. Otherwise the current row would be a neighbour, and the next key would
        act on that one.
        """
        others = [
            n for n, (was, row) in enumerate(zip(self.rows, rows, strict=False)) if self._name(was) != self._name(row)
        ]
        if len(self.rows) == len(rows) and len(others) == 1:
            at = others[0]
            self.rows[at] = rows[at]
            self.dataChanged.emit(self.index(at), self.index(at))
        self.replace(rows)

    def replace(self, rows: Sequence[Row]) -> None:
        names = [self._name(row) for row in rows]
        for gone in [self._name(row) for row in self.rows if self._name(row) not in names]:
            self.take(gone)
        for n, row in enumerate(rows):
            at = self.find(self._name(row))
            if at < 0:
                self.beginInsertRows(_ROOT, n, n)
                self.rows.insert(n, row)
                self.endInsertRows()
                continue
            if at != n:
                self.beginMoveRows(_ROOT, at, at, _ROOT, n)
                self.rows.insert(n, self.rows.pop(at))
                self.endMoveRows()
            if self.rows[n] != row:
                self.put(row)
