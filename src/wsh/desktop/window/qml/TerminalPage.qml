import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts
import Wsh

Item {
    id: page
    readonly property bool taken: app.captured !== ""
    ColumnLayout {
        anchors.fill: parent
        spacing: 0
        RowLayout {
            Layout.fillWidth: true
            Layout.margins: 8
            Layout.leftMargin: 16
            spacing: 8
            StateMark {
                id: mark
                objectName: "stateMark"
                visible: app.selected !== ""
                state_: app.shown.mood || "running"
                exitCode: app.shown.exit_code === undefined || app.shown.exit_code === null ? -1 : app.shown.exit_code
            }
            Text { text: app.shownName; textFormat: Text.PlainText; color: look.c.text; font.bold: true; elide: Text.ElideRight; Layout.maximumWidth: 260 }
            Text { objectName: app.lost !== "" ? "lost: " + app.lost : "stateWord"; visible: app.selected !== ""; text: app.lost !== "" ? app.lost : mark.word; color: app.lost !== "" ? look.c.waiting : look.c.text_soft; elide: Text.ElideRight; Layout.fillWidth: true }
            Item { visible: app.selected === ""; Layout.fillWidth: true }
            Field {
                id: needle
                objectName: "find"
                placeholderText: "Find (Ctrl+Shift+F)"
                Layout.preferredWidth: 180
                onAccepted: app.find(text, true)
                Keys.onPressed: event => {
                    if (event.key === Qt.Key_Escape) { terminal.forceActiveFocus(); event.accepted = true }
                    else if (event.key === Qt.Key_Return && (event.modifiers & Qt.ShiftModifier)) { app.find(text, false); event.accepted = true }
                }
            }
            PlainButton { text: "Copy"; tip: "Ctrl+Shift+C"; onClicked: terminal.copy() }
            PlainButton { text: "Paste"; tip: "Ctrl+Shift+V"; onClicked: terminal.paste() }
            PlainButton { text: "A−"; tip: "Smaller type (Ctrl+−)"; onClicked: terminal.fontSize -= 1 }
            PlainButton { text: "A+"; tip: "Larger type (Ctrl+=)"; onClicked: terminal.fontSize += 1 }
        }
        Rectangle { Layout.fillWidth: true; Layout.preferredHeight: 1; color: look.c.edge }
        Rectangle {
            objectName: "captureBar"
            visible: page.taken
            Layout.fillWidth: true
            Layout.preferredHeight: 32
            color: look.c.captured
            RowLayout {
                anchors { fill: parent; leftMargin: 16; rightMargin: 8 }
                Text {
                    text: "Your keys go to " + app.captured + ", not to the program. Ctrl+\\ takes them back."
                    textFormat: Text.PlainText
                    color: look.c.ground
                    font.bold: true
                    elide: Text.ElideRight
                    Layout.fillWidth: true
                }
                PlainButton { objectName: "releaseKeys"; text: "Take my keys back"; tip: "Ctrl+\\"; onClicked: { app.releaseKeys(); terminal.forceActiveFocus() } }
            }
        }
        Item {
            Layout.fillWidth: true
            Layout.fillHeight: true
            Rectangle {
                anchors.fill: parent
                color: look.c.terminal_ground
                border.width: page.taken ? 3 : 0
                border.color: look.c.captured
            }
            TerminalItem {
                id: terminal
                objectName: "terminal"
                anchors { fill: parent; margins: 8; rightMargin: 16 }
                theme: look.theme
                fontSize: 14
                focus: app.page === "terminal"
                Accessible.role: Accessible.Terminal
                Accessible.name: "Terminal " + app.shownName
                Component.onCompleted: app.connectTerminal(terminal)
            }
            ScrollBar {
                id: bar
                anchors { right: parent.right; top: parent.top; bottom: parent.bottom }
                visible: terminal.history > 0
                readonly property int page: Math.max(1, terminal.rowsShown)
                readonly property real total: page + terminal.history
                size: page / total
                position: 1 - size - terminal.scrolledBy / total
                policy: ScrollBar.AlwaysOn
                minimumSize: 0.04
                onPositionChanged: if (pressed) app.scrollTo(Math.round((1 - size - position) * total))
            }
            Rectangle {
                objectName: "linkShown"
                visible: terminal.link !== ""
                anchors { left: parent.left; bottom: parent.bottom; margins: 8 }
                width: Math.min(parent.width - 32, linkText.implicitWidth + 20)
                height: 26
                radius: 6
                color: look.c.raised
                border.color: look.c.edge
                Text { id: linkText; anchors { fill: parent; leftMargin: 10; rightMargin: 10 } text: terminal.link + "   Ctrl+click opens"; textFormat: Text.PlainText; verticalAlignment: Text.AlignVCenter; color: look.c.text; font.family: "monospace"; font.pixelSize: 12; elide: Text.ElideMiddle }
            }
            Text {
                visible: app.selected === ""
                anchors.centerIn: parent
                text: "Choose a terminal on the left, or open one with New (Ctrl+Shift+N)."
                color: look.c.text_soft
            }
        }
    }
    Shortcut { sequence: "Ctrl+Shift+F"; enabled: app.page === "terminal"; onActivated: { needle.forceActiveFocus(); needle.selectAll() } }
    Connections {
        target: app
        function onSelectedChanged() { if (app.page === "terminal") terminal.forceActiveFocus() }
        function onPageChanged() { if (app.page === "terminal") terminal.forceActiveFocus() }
    }
}
