import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Item {
    id: page
    ColumnLayout {
        anchors { fill: parent; margins: 16 }
        spacing: 12
        Text { text: "Inbox"; color: look.c.text; font.pixelSize: 20; font.bold: true }
        ListView {
            id: list
            objectName: "inboxList"
            Layout.fillWidth: true
            Layout.fillHeight: true
            clip: true
            spacing: 2
            model: app.inboxModel
            boundsBehavior: Flickable.StopAtBounds
            activeFocusOnTab: true
            onCountChanged: if (currentIndex < 0 && count > 0) currentIndex = 0
            Keys.onPressed: event => {
                const id = currentItem ? currentItem.id : ""
                if (event.key === Qt.Key_J) incrementCurrentIndex()
                else if (event.key === Qt.Key_K) decrementCurrentIndex()
                else if (event.key === Qt.Key_E && id) app.markEntry(id, "done")
                else if (event.key === Qt.Key_S && id) app.markEntry(id, "snooze")
                else if ((event.key === Qt.Key_Return || event.key === Qt.Key_Enter) && id) app.openEntry(id)
                else return
                event.accepted = true
            }
            ScrollBar.vertical: ScrollBar { }
            delegate: Rectangle {
                id: row
                objectName: "inboxRow" + index
                required property int index
                required property string id
                required property string kind
                required property string session
                required property string text
                required property string age
                required property bool wants
                readonly property bool chosen: ListView.isCurrentItem
                width: ListView.view.width - 12
                height: 40
                radius: 6
                color: hover.hovered ? look.c.hover : "transparent"
                border.width: chosen && list.activeFocus ? 2 : 0
                border.color: look.c.accent
                Accessible.role: Accessible.ListItem
                Accessible.name: kind + " " + session + " " + text + ", " + age
                HoverHandler { id: hover }
                TapHandler { onTapped: app.openEntry(row.id) }
                RowLayout {
                    anchors { fill: parent; leftMargin: 8; rightMargin: 8 }
                    spacing: 12
                    Text {
                        text: row.kind
                        color: row.kind === "hidden" ? look.c.hidden : row.wants ? look.c.waiting : row.kind.startsWith("failed") ? look.c.failed : look.c.ended
                        font.bold: true
                        Layout.preferredWidth: 76
                    }
                    Text { text: row.session; textFormat: Text.PlainText; color: look.c.text; elide: Text.ElideRight; Layout.preferredWidth: 110 }
                    Text { text: row.text; textFormat: Text.PlainText; color: look.c.text_soft; font.family: "monospace"; elide: Text.ElideRight; Layout.fillWidth: true }
                    Text { text: row.age; color: look.c.text_soft; font.pixelSize: 12 }
                    PlainButton { visible: hover.hovered || row.chosen; text: "Snooze"; tip: "Hides it for an hour (S)"; onClicked: app.markEntry(row.id, "snooze") }
                    PlainButton { visible: (hover.hovered || row.chosen) && row.kind !== "request"; text: "Done"; tip: "E"; onClicked: app.markEntry(row.id, "done") }
                }
            }
            Text {
                visible: list.count === 0
                width: parent.width
                wrapMode: Text.Wrap
                text: "Nothing. Programs of the server that ask, and commands that failed or took long, come here."
                color: look.c.text_soft
            }
        }
        Text { visible: list.count > 0; text: "J and K choose, Enter opens, E is done, S hides for an hour."; color: look.c.text_soft; font.pixelSize: 12 }
    }
    Connections { target: app; function onPageChanged() { if (app.page === "inbox") list.forceActiveFocus() } }
}
