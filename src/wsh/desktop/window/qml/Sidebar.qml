import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Rectangle {
    color: look.c.raised

    ColumnLayout {
        anchors.fill: parent
        spacing: 0

        Text {
            text: "wsh"
            color: look.c.text
            font.pixelSize: 20
            font.bold: true
            Layout.margins: 12
            Layout.bottomMargin: 4
        }
        Text {
            text: "listening on " + app.address
            elide: Text.ElideMiddle
            Layout.fillWidth: true
            Layout.rightMargin: 8
            color: look.c.text_soft
            font.pixelSize: 12
            Layout.leftMargin: 12
            Layout.bottomMargin: 8
        }
        Repeater {
            model: [
                { page: "requests", label: "Requests", keys: "Ctrl+1" },
                { page: "inbox", label: "Inbox", keys: "Ctrl+5" },
                { page: "history", label: "History", keys: "Ctrl+3" },
                { page: "settings", label: "Policy", keys: "Ctrl+4" }
            ]
            NavButton {
                required property var modelData
                Layout.fillWidth: true
                Layout.leftMargin: 8
                Layout.rightMargin: 8
                text: modelData.label
                keys: modelData.keys
                on: app.page === modelData.page
                badge: modelData.page === "requests" ? app.pending : modelData.page === "inbox" ? app.wanting : 0
                onClicked: app.page = modelData.page
            }
        }
        RowLayout {
            Layout.fillWidth: true
            Layout.margins: 12
            Layout.topMargin: 16
            Layout.bottomMargin: 4
            Text { text: "Terminals"; color: look.c.text_soft; font.pixelSize: 12; Layout.fillWidth: true }
            PlainButton { text: "New"; objectName: "newTerminal"; onClicked: app.openTerminal(); tip: "Ctrl+Shift+N" }
        }
        ListView {
            id: list
            objectName: "sessionList"
            Layout.fillWidth: true
            Layout.fillHeight: true
            Layout.leftMargin: 8
            Layout.rightMargin: 8
            clip: true
            spacing: 2
            model: app.sessionModel
            section.property: "workspace"
            section.delegate: Text {
                required property string section
                objectName: "place " + section
                width: ListView.view.width
                text: section
                textFormat: Text.PlainText
                color: look.c.text_soft
                font.pixelSize: 11
                font.family: "monospace"
                elide: Text.ElideMiddle
                topPadding: 6
                leftPadding: 4
            }
            delegate: Rectangle {
                id: entry
                required property string sid
                required property string name
                required property string command
                required property string mood
                required property var exit_code
                required property bool remote
                required property int pending
                width: ListView.view.width
                height: 44
                radius: 6
                color: app.selected === sid && app.page === "terminal" ? look.c.selected : hover.hovered ? look.c.hover : "transparent"
                Accessible.role: Accessible.ListItem
                Accessible.name: name + ", " + mark.word + (remote ? ", on the server" : "") + (pending > 0 ? ", " + pending + " waiting" : "")
                HoverHandler { id: hover }
                TapHandler { onTapped: app.select(entry.sid) }
                RowLayout {
                    anchors { fill: parent; leftMargin: 8; rightMargin: 4 }
                    spacing: 8
                    StateMark { id: mark; state_: entry.mood; exitCode: entry.exit_code === undefined || entry.exit_code === null ? -1 : entry.exit_code }
                    ColumnLayout {
                        Layout.fillWidth: true
                        spacing: 0
                        Text { text: entry.name; textFormat: Text.PlainText; color: look.c.text; font.bold: true; elide: Text.ElideRight; Layout.fillWidth: true }
                        Text { text: entry.command; textFormat: Text.PlainText; color: look.c.text_soft; font.pixelSize: 12; font.family: "monospace"; elide: Text.ElideRight; Layout.fillWidth: true }
                    }
                    Rectangle {
                        objectName: "terminalBadge"
                        visible: entry.pending > 0
                        radius: 9
                        color: look.c.attention
                        implicitWidth: Math.max(20, waits.implicitWidth + 12)
                        implicitHeight: 18
                        Text { id: waits; anchors.centerIn: parent; text: entry.pending; color: look.c.on_accent; font.pixelSize: 11; font.bold: true }
                    }
                    Rectangle {
                        visible: entry.remote && !hover.hovered
                        radius: 4
                        color: "transparent"
                        border.color: look.c.edge
                        implicitWidth: tag.implicitWidth + 10
                        implicitHeight: 18
                        Text { id: tag; anchors.centerIn: parent; text: "server"; color: look.c.text_soft; font.pixelSize: 11 }
                    }
                    PlainButton {
                        visible: hover.hovered
                        text: "×"
                        tip: "Kill this terminal and everything in it"
                        onClicked: app.killSession(entry.sid)
                    }
                }
            }
            Text {
                visible: list.count === 0
                anchors { left: parent.left; right: parent.right; top: parent.top; margins: 8 }
                text: "No terminals yet. Approved commands run here, or open one yourself with New."
                color: look.c.text_soft
                wrapMode: Text.Wrap
            }
        }
    }
}
